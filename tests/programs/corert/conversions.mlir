// CHECK-LABEL: --- Running 'conversions':
// CHECK-NEXT: shape = [3, 1]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3, 1], values = [4, 5, 6]
// CHECK-NEXT: StringHostTensor shape = [1], values = ["text"]
// CHECK-NEXT: 'conversions' returned !tfrt.chain value,7,-8
func.func @conversions() -> (!tfrt.chain, i32, i32) {
  %c0 = tfrt.new.chain
  %a = corert.const_dense_tensor dense<[[4], [5], [6]]> : tensor<3x1xi32>
  %s = "corert.tensorhandle_to_shape"(%a, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !ts.shape
  %c1 = ts.print_shape %s, %c0
  %t = "corert.tensorhandle_to_ht"(%a, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt_tensor.tensor
  %c2 = tfrt_dht.print_tensor %t, %c1
  %w = corert.const_string_tensor {shape = [1], value = ["text"]}
  %u = "corert.tensorhandle_to_ht"(%w, %c2) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt_tensor.tensor
  %c3 = tfrt_dht.print_tensor %u, %c2
  %x = corert.const_dense_tensor dense<7> : tensor<i32>
  %i = corert.tensorhandle_to_int32 %x
  %y = corert.const_dense_tensor dense<-8> : tensor<1xi32>
  %j = corert.tensorhandle_to_int32 %y
  tfrt.return %c3, %i, %j : !tfrt.chain, i32, i32
}

// CHECK-LABEL: --- Running 'no_number':
// CHECK-NEXT: returned <<error: the tensor is int32 of the shape [2], expected int32 of the shape [] or [1]>>
func.func @no_number() -> i32 {
  %x = corert.const_dense_tensor dense<7> : tensor<2xi32>
  // expected-error @+1 {{the tensor is int32 of the shape [2], expected int32 of the shape [] or [1]}}
  %i = corert.tensorhandle_to_int32 %x
  tfrt.return %i : i32
}

// CHECK-LABEL: --- Running 'another_type':
// CHECK-NEXT: returned <<error: the tensor is int64 of the shape [], expected int32
func.func @another_type() -> i32 {
  %x = corert.const_dense_tensor dense<7> : tensor<i64>
  // expected-error @+1 {{the tensor is int64 of the shape []}}
  %i = corert.tensorhandle_to_int32 %x
  tfrt.return %i : i32
}

// CHECK-LABEL: --- Running 'a_handle_is_a_value':
// CHECK-NEXT: 'a_handle_is_a_value' returned <<error: 
func.func @a_handle_is_a_value() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = corert.create_dense_tensor.i32 {shape = [1], value = [1 : i32]}
  %t = "corert.tensorhandle_to_ht"(%x, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt_tensor.tensor
  // expected-error @+1 {{read-only}}
  %c1 = tfrt_dht.fill_tensor_with_constant.i32 %t, %c0 5 : i32
  tfrt.return %c1 : !tfrt.chain
}
