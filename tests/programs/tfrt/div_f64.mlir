// CHECK-LABEL: --- Running 'quotient':
// CHECK-NEXT: 'quotient' returned 2.500000e+00
func.func @quotient() -> f64 {
  %a = tfrt.constant.f64 5.0
  %b = tfrt.constant.f64 2.0
  %q = "tfrt.div.f64"(%a, %b) : (f64, f64) -> f64
  tfrt.return %q : f64
}

// CHECK-LABEL: --- Running 'by_zero':
// CHECK-NEXT: 'by_zero' returned <<error: Divide by zero>>
func.func @by_zero() -> f64 {
  %a = tfrt.constant.f64 5.0
  %b = tfrt.constant.f64 0.0
  %q = "tfrt.div.f64"(%a, %b) : (f64, f64) -> f64 // expected-error {{Divide by zero}}
  tfrt.return %q : f64
}
