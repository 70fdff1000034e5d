// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 1,2
func.func @main() -> (i32, i64) {
  %a = tfrt.constant.i32 1
  %b = tfrt.constant.i64 2
  %x, %y = "tfrt_test.multi_arg_result"(%a, %b) : (i32, i64) -> (i32, i64)
  tfrt.return %x, %y : i32, i64
}
