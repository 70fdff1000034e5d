// CHECK-LABEL: --- Running 'sum':
// CHECK-NEXT: 'sum' returned 1.000000e+10
func.func @sum() -> f64 {
  %a = tfrt.constant.f64 1.0e+10
  %b = tfrt.constant.f64 0.5
  %sum = tfrt.add.f64 %a, %b
  tfrt.return %sum : f64
}
