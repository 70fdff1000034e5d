// CHECK-LABEL: --- Running 'minimum':
// CHECK-NEXT: 'minimum' returned -1.000000e+00
func.func @minimum() -> f64 {
  %a = tfrt.constant.f64 3.0
  %b = tfrt.constant.f64 -1.0
  %x = "tfrt.minimum.f64"(%a, %b) : (f64, f64) -> f64
  tfrt.return %x : f64
}
