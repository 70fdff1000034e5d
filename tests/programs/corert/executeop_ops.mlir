// RUN: bef_executor --test_init_function=register

func.func @register() -> !tfrt.chain {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %c = corert.register_op_handler %cpu "cpu"
  tfrt.return %c : !tfrt.chain
}

// CHECK-LABEL: --- Running 'ops':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 2], values = [1, 0, 1, 0]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [1, 0]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2], values = [-5.000000e-01, 3.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f32, shape = [2, 2], values = [0.000000e+00, 2.000000e+00, 1.000000e+00, 4.000000e+00]
// CHECK-NEXT: DenseHostTensor dtype = f16, shape = [2, 2], values = [fp16(48128), fp16(16384), fp16(0), fp16(17408)]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [1, 3]
// CHECK-NEXT: 'ops' returned
func.func @ops() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %i = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [2, 2], values = [1 : i32, 2 : i32, 3 : i32, 4 : i32]} : 1
  %j = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [2, 2], values = [1 : i32, 0 : i32, 3 : i32, 0 : i32]} : 1
  %same = corert.executeop(%cpu) "tfrt_test.equal"(%i, %j) : 1
  %c1 = "corert.print_tensorhandle"(%same, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %f = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [2, 2], values = [-1.0 : f32, 2.0 : f32, 0.0 : f32, 4.0 : f32]} : 1
  %g = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [2, 2], values = [-1.0 : f32, 2.0 : f32, 1.0 : f32, 4.0 : f32]} : 1
  %most = corert.executeop(%cpu) "tfrt_test.argmax"(%j) {axis = 1 : i32} : 1
  %first = corert.executeop(%cpu) "tfrt_test.argmax"(%j) {axis = 0 : i32} : 1
  %c2 = "corert.print_tensorhandle"(%first, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %mean = corert.executeop(%cpu) "tfrt_test.reduce_mean"(%f) {axis = 0 : i32} : 1
  %c3 = "corert.print_tensorhandle"(%mean, %c2) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %relu = corert.executeop(%cpu) "tfrt_test.relu"(%g) : 1
  %c4 = "corert.print_tensorhandle"(%relu, %c3) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %cast = corert.executeop(%cpu) "tfrt_test.cast"(%f) {type = "f16"} : 1
  %c5 = "corert.print_tensorhandle"(%cast, %c4) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %v = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [4], values = [1 : i32, 2 : i32, 3 : i32, 4 : i32]} : 1
  %odd = corert.executeop(%cpu) "tfrt_test.odd_collector"(%v) : 1
  %c6 = "corert.print_tensorhandle"(%odd, %c5) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c6 : !tfrt.chain
}
