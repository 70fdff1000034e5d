// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [1, 1, 1, 1], values = [4.000000e+00]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %c1 = tfrt_dht.set_tensor_with_constant_values.f32 %a, %c0 [1.0 : f32, 4.0 : f32, 3.0 : f32, 2.0 : f32]
  %b = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 1 : i64, 1 : i64, 1 : i64]
  %c2 = "tfrt_test.max_pooling_2d.f32"(%a, %b, %c1) {padding = "valid", pool_size = [2, 2], strides = [2, 2]}
    : (!tfrt_tensor.tensor, !tfrt_tensor.tensor, !tfrt.chain) -> !tfrt.chain
  %c3 = tfrt_dht.print_tensor %b, %c2
  tfrt.return %c3 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'unknown_padding':
// CHECK-NEXT: 'unknown_padding' returned <<error: MaxPool2D padding 'odd' is not recognized>>
func.func @unknown_padding() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %c1 = tfrt_dht.fill_tensor_with_constant.f32 %a, %c0 2.0 : f32
  %b = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 1 : i64, 1 : i64, 1 : i64]
  // expected-error @+1 {{MaxPool2D padding 'odd' is not recognized}}
  %c2 = "tfrt_test.max_pooling_2d.f32"(%a, %b, %c1) {padding = "odd", pool_size = [2, 2], strides = [2, 2]}
    : (!tfrt_tensor.tensor, !tfrt_tensor.tensor, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}
