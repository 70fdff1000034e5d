// CHECK-LABEL: --- Running 'constant':
// CHECK-NEXT: 'constant' returned -1.250000e-01
func.func @constant() -> f64 {
  %x = tfrt.constant.f64 -0.125
  tfrt.return %x : f64
}
