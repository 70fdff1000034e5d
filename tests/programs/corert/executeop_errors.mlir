// RUN: bef_executor --test_init_function=register

func.func @register() -> !tfrt.chain {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %c = corert.register_op_handler %cpu "cpu"
  tfrt.return %c : !tfrt.chain
}

// CHECK-LABEL: --- Running 'unknown_op':
// CHECK-NEXT: 'unknown_op' returned <<error: tf.invalidop was not supported by NullOpHandler.>>
func.func @unknown_op() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  // expected-error @+1 {{runtime error: tf.invalidop was not supported by NullOpHandler.}}
  %a = corert.executeop(%cpu) "tf.invalidop"() : 1
  tfrt.return %a : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'unknown_ordered_op':
// CHECK-NEXT: returned <<error: some.op was not supported by NullOpHandler.>>,<<error: some.op was not supported by NullOpHandler.>>
func.func @unknown_ordered_op() -> (!tfrt.chain, !corert.tensorhandle) {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  // expected-error @+1 {{runtime error: some.op was not supported by NullOpHandler.}}
  %c1, %a = corert.executeop.seq(%cpu, %c0) "some.op"() : 1
  tfrt.return %c1, %a : !tfrt.chain, !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'failing_kernel':
// CHECK-NEXT: 'failing_kernel' returned <<error: error from test.error.tensor implementation>>
func.func @failing_kernel() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %a = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [1], values = [1 : i32]} : 1
  // expected-error @+1 {{runtime error: error from test.error.tensor implementation}}
  %b = corert.executeop(%cpu) "tfrt_test.error.tensor"(%a) : 1
  %d = corert.executeop(%cpu) "tfrt_test.add"(%a, %b) : 1
  %c1 = "corert.print_tensorhandle"(%d, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'late_error':
// CHECK-NEXT: 'late_error' returned <<error: error from test.error.tensor implementation>>
func.func @late_error() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %a = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [1], values = [1 : i32]} : 1
  %b = corert.executeop(%cpu) "tfrt_test.async.noop_no_md"(%a) : 1
  // expected-error @+1 {{runtime error: error from test.error.tensor implementation}}
  %d = corert.executeop(%cpu) "tfrt_test.error.tensor"(%b) : 1
  %e = corert.executeop(%cpu) "tfrt_test.async.noop"(%d) : 1
  tfrt.return %e : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'wrong_shapes':
// CHECK-NEXT: 'wrong_shapes' returned <<error: the tensors are int32[1] and int32[2], expected one type and one shape>>
func.func @wrong_shapes() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %a = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [1], values = [1 : i32]} : 1
  %b = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [2], values = [1 : i32]} : 1
  // expected-error @+1 {{runtime error: the tensors are int32[1] and int32[2]}}
  %d = corert.executeop(%cpu) "tfrt_test.add"(%a, %b) : 1
  tfrt.return %d : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'too_many_results':
// CHECK-NEXT: 'too_many_results' returned <<error: corert.executeop produced 1 values, but the call has 2 results>>
func.func @too_many_results() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  // expected-error @+1 {{produced 1 values, but the call has 2 results}}
  %a, %b = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [1], values = [1 : i32]} : 2
  tfrt.return %b : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'too_few_results':
// CHECK-NEXT: 'too_few_results' returned !tfrt.chain value
func.func @too_few_results() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  // expected-error @+1 {{produced 1 values, but the call has 0 results}}
  corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [1], values = [1 : i32]}
  tfrt.return %c0 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'unknown_attribute':
// CHECK-NEXT: 'unknown_attribute' returned <<error: op tfrt_test.create_dense_tensor has no attribute 'shapes'>>
func.func @unknown_attribute() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  // expected-error @+1 {{has no attribute 'shapes'}}
  %a = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shapes = [1], values = [1 : i32]} : 1
  tfrt.return %a : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'error_handle':
// CHECK-NEXT: 'error_handle' returned <<error: invalid tensorhandle>>,<<error: invalid tensorhandle>>
func.func @error_handle() -> (!corert.tensorhandle, !tfrt.chain) {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  // expected-error @+1 {{runtime error: invalid tensorhandle}}
  %a = "tfrt_test.error_tensorhandle"() : () -> !corert.tensorhandle
  %b = corert.executeop(%cpu) "tfrt_test.async.noop"(%a) : 1
  %c1 = corert.executeop.seq(%cpu, %c0) "tfrt_test.print"(%b) : 0
  tfrt.return %b, %c1 : !corert.tensorhandle, !tfrt.chain
}

// CHECK-LABEL: --- Running 'cancelled':
// CHECK: 'cancelled' returned <<error: Cancelled>>
func.func @cancelled() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %a = corert.executeop(%cpu) "tfrt_test.create_dense_tensor"() {shape = [1], values = [1 : i32]} : 1
  %x, %c1 = "tfrt_test.cancel"(%c0) : (!tfrt.chain) -> (i32, !tfrt.chain)
  %c2, %b = corert.executeop.seq(%cpu, %c1) "tfrt_test.add"(%a, %a) : 1
  tfrt.return %b : !corert.tensorhandle
}
