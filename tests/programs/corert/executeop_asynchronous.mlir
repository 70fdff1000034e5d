// RUN: bef_executor --test_init_function=register

func.func @register() -> !tfrt.chain {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %c = corert.register_op_handler %cpu "cpu"
  tfrt.return %c : !tfrt.chain
}

// CHECK-LABEL: --- Running 'async':
// CHECK-NEXT: shape = [2, 1]
// CHECK-NEXT: shape = [2, 1]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 1], values = [14, 14]
// CHECK-NEXT: 'async' returned !tfrt.chain value
func.func @async() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %a = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [2, 1], values = [7 : i32]} : 1
  %b = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1
  %s = "corert.tensorhandle_to_shape"(%b, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !ts.shape
  %c1 = ts.print_shape %s, %c0
  %d = corert.executeop(%cpu) "tfrt_test.async.noop_no_md"(%b) : 1
  %t = "corert.tensorhandle_to_shape"(%d, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !ts.shape
  %c2 = ts.print_shape %t, %c1
  %e = corert.executeop(%cpu) "tfrt_test.add"(%d, %b) : 1
  %c3 = "corert.print_tensorhandle"(%e, %c2) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c3 : !tfrt.chain
}
