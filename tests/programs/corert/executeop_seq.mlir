// RUN: bef_executor --test_init_function=register

func.func @register() -> !tfrt.chain {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %c = corert.register_op_handler %cpu "cpu"
  tfrt.return %c : !tfrt.chain
}

// CHECK-LABEL: --- Running 'ordered':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [1]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [2]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [3]
// CHECK-NEXT: 'ordered' returned !tfrt.chain value
func.func @ordered() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %c1, %a = corert.executeop.seq(%cpu, %c0) "tfrt_test.create_dense_tensor"() {shape = [1], values = [1 : i32]} : 1
  %b = corert.executeop(%cpu) "tfrt_test.add"(%a, %a) : 1
  %slow = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1
  %d = corert.executeop(%cpu) "tfrt_test.add"(%a, %b) : 1
  %c2 = corert.executeop.seq(%cpu, %c1) "tfrt_test.print"(%slow) : 0
  %c3 = corert.executeop.seq(%cpu, %c2) "tfrt_test.print"(%b) : 0
  %c4 = corert.executeop.seq(%cpu, %c3) "tfrt_test.print"(%d)
  tfrt.return %c4 : !tfrt.chain
}
