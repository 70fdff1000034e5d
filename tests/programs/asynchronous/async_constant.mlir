// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 4
func.func @main() -> i32 {
  %x = "tfrt_test.async_constant.i32"() {value = 4 : i32} : () -> i32
  tfrt.return %x : i32
}
