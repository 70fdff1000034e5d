// CHECK-LABEL: --- Running 'constants':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 2], values = [0, 1, 2, 3]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [1.500000e+00, 1.500000e+00]
// CHECK-NEXT: StringHostTensor shape = [2], values = ["string", "tensor"]
// CHECK-NEXT: StringHostTensor shape = [2, 2], values = ["x", "x", "x", "x"]
func.func @constants() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = corert.const_dense_tensor dense<[[0, 1], [2, 3]]> : tensor<2x2xi32>
  %c1 = "corert.print_tensorhandle"(%a, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %b = corert.const_dense_tensor dense<1.5> : tensor<2xf32>
  %c2 = "corert.print_tensorhandle"(%b, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %s = corert.const_string_tensor {shape = [2], value = ["string", "tensor"]}
  %c3 = "corert.print_tensorhandle"(%s, %c2) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %t = corert.const_string_tensor {shape = [2, 2], value = ["x"]}
  %c4 = "corert.print_tensorhandle"(%t, %c3) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c4 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'wrong_number_of_strings':
// CHECK-NEXT: 'wrong_number_of_strings' returned <<error: 2 strings are given for the shape [3]>>
func.func @wrong_number_of_strings() -> !corert.tensorhandle {
  // expected-error @+1 {{2 strings are given for the shape [3]}}
  %s = corert.const_string_tensor {shape = [3], value = ["a", "b"]}
  tfrt.return %s : !corert.tensorhandle
}
