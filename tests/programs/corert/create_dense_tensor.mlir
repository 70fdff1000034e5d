// CHECK-LABEL: --- Running 'created':
// CHECK-NEXT: DenseHostTensor dtype = u64, shape = [2, 1], values = [2, 2]
// CHECK-NEXT: DenseHostTensor dtype = i1, shape = [2], values = [0, 1]
// CHECK-NEXT: DenseHostTensor dtype = bf16, shape = [1], values = [bf16(16256)]
// CHECK-NEXT: DenseHostTensor dtype = i8, shape = [0], values = []
func.func @created() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = corert.create_dense_tensor.ui64 {shape = [2, 1], value = [2 : ui64]}
  %c1 = "corert.print_tensorhandle"(%a, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %b = corert.create_dense_tensor.i1 {shape = [2], value = [false, true]}
  %c2 = "corert.print_tensorhandle"(%b, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %d = corert.create_dense_tensor.bf16 {shape = [1], value = [1.0 : bf16]}
  %c3 = "corert.print_tensorhandle"(%d, %c2) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %e = corert.create_dense_tensor.i8 {shape = [0], value = []}
  %c4 = "corert.print_tensorhandle"(%e, %c3) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c4 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'wrong_number':
// CHECK-NEXT: 'wrong_number' returned <<error: 2 values are given for the shape [3]>>
func.func @wrong_number() -> !corert.tensorhandle {
  // expected-error @+1 {{2 values are given for the shape [3]}}
  %a = corert.create_dense_tensor.i32 {shape = [3], value = [1 : i32, 2 : i32]}
  tfrt.return %a : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'negative_dimension':
// CHECK-NEXT: returned <<error: 1 values are given for the shape [-1]>>
func.func @negative_dimension() -> !corert.tensorhandle {
  // expected-error @+1 {{1 values are given for the shape [-1]}}
  %a = corert.create_dense_tensor.i32 {shape = [-1], value = [1 : i32]}
  tfrt.return %a : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'wrong_element':
// CHECK-NEXT: returned <<error: values of i32 are needed:
func.func @wrong_element() -> !corert.tensorhandle {
  // expected-error @+1 {{values of i32 are needed}}
  %a = corert.create_dense_tensor.i32 {shape = [1], value = ["text"]}
  tfrt.return %a : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'wide_element':
// CHECK-NEXT: returned <<error: values of i8 are needed:
func.func @wide_element() -> !corert.tensorhandle {
  // expected-error @+1 {{values of i8 are needed}}
  %a = corert.create_dense_tensor.i8 {shape = [1], value = [300 : i32]}
  tfrt.return %a : !corert.tensorhandle
}
