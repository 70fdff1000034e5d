// CHECK-LABEL: --- Running 'multiply':
// CHECK-NEXT: 'multiply' returned -3.000000e+00
func.func @multiply() -> f32 {
  %a = tfrt.constant.f32 3.0
  %b = tfrt.constant.f32 -1.0
  %x = "tfrt.multiply.f32"(%a, %b) : (f32, f32) -> f32
  tfrt.return %x : f32
}
