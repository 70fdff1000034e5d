// Integers wrap around.
// CHECK-LABEL: --- Running 'sum':
// CHECK-NEXT: 'sum' returned -9223372036854775807
func.func @sum() -> i64 {
  %a = tfrt.constant.i64 9223372036854775807
  %b = tfrt.constant.i64 2
  %sum = tfrt.add.i64 %a, %b
  tfrt.return %sum : i64
}
