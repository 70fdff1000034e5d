// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2, 2], values = [1.000000e+00, 1.000000e+00, 1.000000e+00, 1.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3, 1], values = [-2, -2, -2]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %c1 = tfrt_dht.fill_tensor_with_constant.f32 %a, %c0 1.0 : f32
  %c2 = tfrt_dht.print_tensor %a, %c1
  %b = tfrt_dht.create_uninitialized_tensor.i32.2 [3 : i64, 1 : i64]
  %c3 = tfrt_dht.fill_tensor_with_constant.i32 %b, %c2 -2 : i32
  %c4 = tfrt_dht.print_tensor %b, %c3
  tfrt.return %c4 : !tfrt.chain
}
