// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [5.000000e-01, -2.000000e+00]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.1 [2 : i64]
  %c1 = tfrt_dht.set_tensor_with_constant_values.f32 %a, %c0 [0.5 : f32, -2.0 : f32]
  %c2 = tfrt_dht.print_tensor %a, %c1
  tfrt.return %c2 : !tfrt.chain
}
