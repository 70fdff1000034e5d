// RUN: bef_executor --test_init_function=register

func.func @register() -> !tfrt.chain {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %c = corert.register_op_handler %cpu "cpu"
  tfrt.return %c : !tfrt.chain
}

func.func @double(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %c "cpu"
  %c1, %y = corert.executeop.seq(%cpu, %c) "tfrt_test.add"(%x, %x) : 1
  tfrt.return %c1, %y : !tfrt.chain, !corert.tensorhandle
}

func.func @later(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %c "cpu"
  %y = corert.executeop(%cpu) "tfrt_test.async.noop_no_md"(%x) : 1
  tfrt.return %c, %y : !tfrt.chain, !corert.tensorhandle
}

func.func @failing(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %c "cpu"
  // expected-error @+1 {{error from test.error.tensor implementation}}
  %y = corert.executeop(%cpu) "tfrt_test.error.tensor"(%x) : 1
  tfrt.return %c, %x, %y : !tfrt.chain, !corert.tensorhandle, !corert.tensorhandle
}

func.func @without_chain(%x: !corert.tensorhandle) -> !corert.tensorhandle {
  tfrt.return %x : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'composite':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [4, 4]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [4, 4]
func.func @composite() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %op = "corert.make_composite_op"() {fn = @double} : () -> !corert.op
  %x = corert.const_dense_tensor dense<1> : tensor<2xi32>
  %y = "corert.execute_crt_op"(%op, %x) {op_attrs = [], op_func_attrs = []} : (!corert.op, !corert.tensorhandle) -> !corert.tensorhandle
  %z = corert.execute_crt_op(%op) (%y) : 1
  %c1 = "corert.print_tensorhandle"(%z, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %async = "corert.make_composite_op"() {fn = @later} : () -> !corert.op
  %w = corert.execute_crt_op(%async) (%z) : 1
  %c2 = "corert.print_tensorhandle"(%w, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'error_of_one_result':
// CHECK-NEXT: returned !corert.tensorhandle value,<<error: error from test.error.tensor implementation>>
func.func @error_of_one_result() -> (!corert.tensorhandle, !corert.tensorhandle) {
  %op = "corert.make_composite_op"() {fn = @failing} : () -> !corert.op
  %x = corert.const_dense_tensor dense<1> : tensor<2xi32>
  %y, %z = corert.execute_crt_op(%op) (%x) : 2
  tfrt.return %y, %z : !corert.tensorhandle, !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'attributes':
// CHECK-NEXT: returned <<error: the composite op 'double' takes no attributes, but has axis>>
func.func @attributes() -> !corert.tensorhandle {
  %op = "corert.make_composite_op"() {fn = @double} : () -> !corert.op
  %x = corert.const_dense_tensor dense<1> : tensor<2xi32>
  // expected-error @+1 {{the composite op 'double' takes no attributes, but has axis}}
  %y = corert.execute_crt_op(%op) (%x) {axis = 1 : i32} : 1
  tfrt.return %y : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'wrong_number_of_arguments':
// CHECK-NEXT: returned <<error: the composite op 'double' takes 1 tensors, 2 were given>>
func.func @wrong_number_of_arguments() -> !corert.tensorhandle {
  %op = "corert.make_composite_op"() {fn = @double} : () -> !corert.op
  %x = corert.const_dense_tensor dense<1> : tensor<2xi32>
  // expected-error @+1 {{the composite op 'double' takes 1 tensors, 2 were given}}
  %y = corert.execute_crt_op(%op) (%x, %x) : 1
  tfrt.return %y : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'wrong_number_of_results':
// CHECK-NEXT: returned <<error: corert.execute_crt_op produced 1 values, but the call has 2 results>>
func.func @wrong_number_of_results() -> !corert.tensorhandle {
  %op = "corert.make_composite_op"() {fn = @double} : () -> !corert.op
  %x = corert.const_dense_tensor dense<1> : tensor<2xi32>
  // expected-error @+1 {{produced 1 values, but the call has 2 results}}
  %y, %z = corert.execute_crt_op(%op) (%x) : 2
  tfrt.return %y : !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'no_composite_op':
// CHECK-NEXT: returned <<error: the function 'without_chain' is no composite op
func.func @no_composite_op() -> !corert.op {
  // expected-error @+1 {{the function 'without_chain' is no composite op}}
  %op = "corert.make_composite_op"() {fn = @without_chain} : () -> !corert.op
  tfrt.return %op : !corert.op
}
