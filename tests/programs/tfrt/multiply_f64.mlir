// CHECK-LABEL: --- Running 'multiply':
// CHECK-NEXT: 'multiply' returned -3.000000e+00
func.func @multiply() -> f64 {
  %a = tfrt.constant.f64 3.0
  %b = tfrt.constant.f64 -1.0
  %x = "tfrt.multiply.f64"(%a, %b) : (f64, f64) -> f64
  tfrt.return %x : f64
}
