// CHECK-LABEL: --- Running 'minimum':
// CHECK-NEXT: 'minimum' returned -1.000000e+00
func.func @minimum() -> f32 {
  %a = tfrt.constant.f32 3.0
  %b = tfrt.constant.f32 -1.0
  %x = "tfrt.minimum.f32"(%a, %b) : (f32, f32) -> f32
  tfrt.return %x : f32
}
