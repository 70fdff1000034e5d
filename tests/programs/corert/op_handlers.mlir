// CHECK-LABEL: --- Running 'null':
// CHECK-NEXT: returned <<error: tfrt_test.add was not supported by NullOpHandler.>>
func.func @null() -> !corert.tensorhandle {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %a = corert.const_dense_tensor dense<7> : tensor<1xi32>
  // expected-error @+1 {{runtime error: tfrt_test.add was not supported by NullOpHandler.}}
  %b = corert.executeop(%null) "tfrt_test.add"(%a, %a) : 1
  tfrt.return %b : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'chain_of_handlers':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [14]
func.func @chain_of_handlers() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %first = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %second = "corert.create_cpu_op_handler"(%first) : (!corert.ophandler) -> !corert.ophandler
  %a = corert.const_dense_tensor dense<7> : tensor<1xi32>
  %b = corert.executeop(%second) "tfrt_test.add"(%a, %a) : 1
  %c1 = "corert.print_tensorhandle"(%b, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'registered':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [14]
func.func @registered() -> !tfrt.chain {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %c0 = corert.register_op_handler %null "mine"
  %c1 = corert.register_op_handler %cpu "mine2"
  %c2 = tfrt.merge.chains %c0, %c1 : !tfrt.chain, !tfrt.chain
  %h = corert.get_op_handler %c2 "mine2"
  %a = corert.const_dense_tensor dense<7> : tensor<1xi32>
  %b = corert.executeop(%h) "tfrt_test.add"(%a, %a) : 1
  %c3 = "corert.print_tensorhandle"(%b, %c2) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c3 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'not_found':
// CHECK-NEXT: returned <<error: op_handler not found: gpu>>
func.func @not_found() -> !corert.ophandler {
  %c0 = tfrt.new.chain
  // expected-error @+1 {{runtime error: op_handler not found: gpu}}
  %h = corert.get_op_handler %c0 "gpu"
  tfrt.return %h : !corert.ophandler
}

// CHECK-LABEL: --- Running 'ops_of_an_op_set':
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2, 2], values = [7.000000e+00, 1.000000e+01, 1.500000e+01, 2.200000e+01]
func.func @ops_of_an_op_set() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %a = corert.const_dense_tensor dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = corert.executeop(%cpu) "MatMul"(%a, %a) {transpose_a = false, T = f32} : 1
  %c1 = "corert.print_tensorhandle"(%b, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}
