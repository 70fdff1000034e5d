// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: CooHostTensor dtype = f32, shape = [2, 2], indices = [1, 0], values = [2.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 1], values = [1, 1]
// CHECK-NEXT: int1 = 1
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 2 : i64]
  %c1 = tfrt_dht.set_tensor_with_constant_values.f32 %a, %c0 [0.0 : f32, 0.0 : f32, 2.0 : f32, 0.0 : f32]
  %coo, %c2 = coo.convert_dht_to_coo.f32.2 %a, %c1
  %c3 = tfrt_dht.print_tensor %coo, %c2
  %b = tfrt_dht.create_uninitialized_tensor.i32.2 [2 : i64, 1 : i64]
  %c4 = tfrt_dht.fill_tensor_with_constant.i32 %b, %c3 1 : i32
  %bcoo, %c5 = coo.convert_dht_to_coo.i32.2 %b, %c4
  %back, %c6 = coo.convert_coo_to_dht.i32.2 %bcoo, %c5
  %c7 = tfrt_dht.print_tensor %back, %c6
  %same, %c8 = coo.tensor_equal.i32.2 %bcoo, %bcoo, %c7
  %c9 = tfrt.print.i1 %same, %c8
  tfrt.return %c9 : !tfrt.chain
}
