// CHECK-LABEL: --- Running 'quotient':
// CHECK-NEXT: 'quotient' returned 2.500000e+00
func.func @quotient() -> f32 {
  %a = tfrt.constant.f32 5.0
  %b = tfrt.constant.f32 2.0
  %q = "tfrt.div.f32"(%a, %b) : (f32, f32) -> f32
  tfrt.return %q : f32
}

// CHECK-LABEL: --- Running 'by_zero':
// CHECK-NEXT: 'by_zero' returned <<error: Divide by zero>>
func.func @by_zero() -> f32 {
  %a = tfrt.constant.f32 5.0
  %b = tfrt.constant.f32 0.0
  %q = "tfrt.div.f32"(%a, %b) : (f32, f32) -> f32 // expected-error {{Divide by zero}}
  tfrt.return %q : f32
}
