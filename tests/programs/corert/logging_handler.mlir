// RUN: bef_executor --test_init_function=register 2>&1

func.func @register() -> !tfrt.chain {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %log = "corert.create_logging_op_handler"(%cpu) {sync_log_results = false} : (!corert.ophandler) -> !corert.ophandler
  %sync = "corert.create_logging_op_handler"(%cpu) {sync_log_results = true} : (!corert.ophandler) -> !corert.ophandler
  %c0 = corert.register_op_handler %log "log"
  %c1 = corert.register_op_handler %sync "sync"
  %c2 = tfrt.merge.chains %c0, %c1 : !tfrt.chain, !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'logged':
// CHECK-NEXT: [0] dispatch 'tfrt_test.create_dense_tensor' 0 argument(s), 1 result(s), OpAttrs contains 2 entries:
// CHECK-NEXT:   'shape' type=SHAPE value=[2]
// CHECK-NEXT:   'values' type=DENSE value=dtype = i32, shape = [1], values = [1]
// CHECK-NEXT: Inputs for [0]: 'tfrt_test.create_dense_tensor':
// CHECK-NEXT: Outputs for [0]: 'tfrt_test.create_dense_tensor' after {{[0-9.]+}} us:
// CHECK-NEXT:   <TensorHandle value, int32[2], CPU:0, [1, 1]>
// CHECK-NEXT: [1] dispatch 'tfrt_test.add' 2 argument(s), 1 result(s), no attributes
// CHECK-NEXT: Inputs for [1]: 'tfrt_test.add':
// CHECK-NEXT:   <TensorHandle value, int32[2], CPU:0, [1, 1]>
// CHECK-NEXT:   <TensorHandle value, int32[2], CPU:0, [1, 1]>
// CHECK-NEXT: Outputs for [1]: 'tfrt_test.add' after {{[0-9.]+}} us:
// CHECK-NEXT:   <TensorHandle value, int32[2], CPU:0, [2, 2]>
// CHECK-NEXT: [2] dispatch 'tfrt_test.print' 1 argument(s), 0 result(s), no attributes
// CHECK-NEXT: Inputs for [2]: 'tfrt_test.print':
// CHECK-NEXT:   <TensorHandle value, int32[2], CPU:0, [2, 2]>
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [2, 2]
// CHECK-NEXT: Outputs for [2]: 'tfrt_test.print' after
func.func @logged() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %log = corert.get_op_handler %c0 "log"
  %a = corert.executeop(%log) "tfrt_test.create_dense_tensor"() {shape = [2], values = [1 : i32]} : 1
  %b = corert.executeop(%log) "tfrt_test.add"(%a, %a) : 1
  %c1 = corert.executeop.seq(%log, %c0) "tfrt_test.print"(%b) : 0
  tfrt.return %c1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'pending':
// CHECK: Outputs for [4]: 'tfrt_test.async.noop' after
// CHECK-NEXT: <TensorHandle pending, int32[1], CPU:0>
func.func @pending() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %log = corert.get_op_handler %c0 "log"
  %a = corert.executeop(%log) "tfrt_test.create_dense_tensor"() {shape = [1], values = [7 : i32]} : 1
  %b = corert.executeop(%log) "tfrt_test.async.noop"(%a) : 1
  tfrt.return %b : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'sync_log_results':
// CHECK: Outputs for [1]: 'tfrt_test.async.noop' after
// CHECK-NEXT: <TensorHandle value, int32[1], CPU:0, [7]>
// CHECK: Outputs for [2]: 'tfrt_test.async.noop_no_md' after
// CHECK-NEXT: <TensorHandle value, int32[1], CPU:0, [7]>
// CHECK: Outputs for [3]: 'tfrt_test.error.tensor' after
// CHECK-NEXT: <TensorHandle error Internal: {{.*}}error from test.error.tensor implementation
// CHECK: returned <<error: error from test.error.tensor implementation>>
func.func @sync_log_results() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %log = corert.get_op_handler %c0 "sync"
  %a = corert.executeop(%log) "tfrt_test.create_dense_tensor"() {shape = [1], values = [7 : i32]} : 1
  %b = corert.executeop(%log) "tfrt_test.async.noop"(%a) : 1
  %d = corert.executeop(%log) "tfrt_test.async.noop_no_md"(%b) : 1
  // expected-error @+1 {{error from test.error.tensor implementation}}
  %e = corert.executeop(%log) "tfrt_test.error.tensor"(%d) : 1
  tfrt.return %e : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'failed_dispatch':
// CHECK: [4] 'tfrt_test.add' failed: 
// CHECK: returned <<error: the tensors are int32[1] and int32[2]
func.func @failed_dispatch() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %log = corert.get_op_handler %c0 "sync"
  %a = corert.const_dense_tensor dense<7> : tensor<1xi32>
  %b = corert.const_dense_tensor dense<7> : tensor<2xi32>
  // expected-error @+1 {{the tensors are int32[1] and int32[2]}}
  %d = corert.executeop(%log) "tfrt_test.add"(%a, %b) : 1
  tfrt.return %d : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'unsupported_op':
// CHECK-NOT: dispatch
// CHECK: returned <<error: tf.invalidop was not supported by NullOpHandler.>>
func.func @unsupported_op() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %log = corert.get_op_handler %c0 "log"
  // expected-error @+1 {{tf.invalidop was not supported by NullOpHandler.}}
  %a = corert.executeop(%log) "tf.invalidop"() : 1
  tfrt.return %a : !corert.tensorhandle
}
