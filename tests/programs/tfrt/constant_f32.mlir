// CHECK-LABEL: --- Running 'constant':
// CHECK-NEXT: 'constant' returned 1.500000e+00
func.func @constant() -> f32 {
  %x = tfrt.constant.f32 1.5
  tfrt.return %x : f32
}
