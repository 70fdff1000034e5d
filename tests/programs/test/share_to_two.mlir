// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 3,3
func.func @main() -> (i32, i32) {
  %a = tfrt.constant.i32 3
  %x, %y = "tfrt_test.share_to_two"(%a) : (i32) -> (i32, i32)
  tfrt.return %x, %y : i32, i32
}
