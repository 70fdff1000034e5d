// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1, 4], values = [2.000000e+00, 2.000000e+00, 2.000000e+00, 2.000000e+00]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 1 : i64, 2 : i64]
  %c1 = tfrt_dht.fill_tensor_with_constant.f32 %a, %c0 2.0 : f32
  %b = tfrt_dht.create_uninitialized_tensor.f32.2 [1 : i64, 4 : i64]
  %c2 = "tfrt_test.flatten.f32"(%a, %b, %c1) : (!tfrt_tensor.tensor, !tfrt_tensor.tensor, !tfrt.chain) -> !tfrt.chain
  %c3 = tfrt_dht.print_tensor %b, %c2
  tfrt.return %c3 : !tfrt.chain
}
