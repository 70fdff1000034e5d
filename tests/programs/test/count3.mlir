// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 5,6,7
func.func @main() -> (i32, i32, i32) {
  %a = tfrt.constant.i32 4
  %0:3 = tfrt_test.count3.i32 %a
  tfrt.return %0#0, %0#1, %0#2 : i32, i32, i32
}
