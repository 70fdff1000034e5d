// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 1,0
func.func @main() -> (i1, i1) {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64]
  %b = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64]
  %c = tfrt_dht.create_uninitialized_tensor.f32.1 [1 : i64]
  %c1 = tfrt_dht.set_tensor_with_constant_values.f32 %a, %c0 [1.0 : f32]
  %c2 = tfrt_dht.set_tensor_with_constant_values.f32 %b, %c1 [0x3F800002 : f32]
  %c3 = tfrt_dht.set_tensor_with_constant_values.f32 %c, %c2 [0x3F800003 : f32]
  %close, %c4 = tfrt_dht.tensor_allclose.f32 %a, %b, %c3
  %far, %c5 = tfrt_dht.tensor_allclose.f32 %a, %c, %c4
  tfrt.return %close, %far : i1, i1
}
