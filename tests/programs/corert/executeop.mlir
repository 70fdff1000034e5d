// RUN: bef_executor --test_init_function=register

func.func @register() -> !tfrt.chain {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %c = corert.register_op_handler %cpu "cpu"
  tfrt.return %c : !tfrt.chain
}

// CHECK-LABEL: --- Running 'add':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2, 2], values = [3, 3, 3, 3]
func.func @add() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %a = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [2 : i64, 2 : i64], values = [1 : i32]} : 1
  %b = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [2 : i64, 2 : i64], values = [2 : i32]} : 1
  %sum = corert.executeop(%cpu) "tfrt_test.add"(%a, %b) : 1
  %c1 = "corert.print_tensorhandle"(%sum, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}
