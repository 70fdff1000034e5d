// CHECK-LABEL: --- Running 'sum':
// CHECK-NEXT: 'sum' returned 7.500000e-01
func.func @sum() -> f32 {
  %a = tfrt.constant.f32 0.5
  %b = tfrt.constant.f32 0.25
  %sum = tfrt.add.f32 %a, %b
  tfrt.return %sum : f32
}
