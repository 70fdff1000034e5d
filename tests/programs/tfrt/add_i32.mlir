// Integers wrap around.
// CHECK-LABEL: --- Running 'sum':
// CHECK-NEXT: 'sum' returned -2147483648
func.func @sum() -> i32 {
  %a = tfrt.constant.i32 2147483647
  %b = tfrt.constant.i32 1
  %sum = tfrt.add.i32 %a, %b
  tfrt.return %sum : i32
}
