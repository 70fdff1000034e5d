// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 8
func.func @main() -> i32 {
  %a = tfrt.constant.i32 4
  %x = "tfrt_test.async_add.i32"(%a, %a) : (i32, i32) -> i32
  tfrt.return %x : i32
}
