// RUN: bef_executor --test_init_function=register

func.func @register() -> !tfrt.chain {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %c = corert.register_op_handler %cpu "cpu"
  tfrt.return %c : !tfrt.chain
}

func.func @twice(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %c "cpu"
  %y = corert.executeop(%cpu) "tfrt_test.add"(%x, %x) : 1
  tfrt.return %c, %y : !tfrt.chain, !corert.tensorhandle
}

func.func @same(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %c, %x : !tfrt.chain, !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'branches':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [14]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [7]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [14]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [7]
func.func @branches() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = corert.const_dense_tensor dense<7> : tensor<1xi32>
  %true = corert.const_dense_tensor dense<-1> : tensor<i32>
  %false = corert.const_dense_tensor dense<0.0> : tensor<1xf32>
  %text = corert.const_string_tensor {shape = [], value = ["text"]}
  %empty = corert.const_string_tensor {shape = [], value = [""]}
  %c1, %a = corert.cond %true @twice @same (%c0, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  %c2 = "corert.print_tensorhandle"(%a, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %c3, %b = corert.cond %false @twice @same (%c2, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  %c4 = "corert.print_tensorhandle"(%b, %c3) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %c5, %d = corert.cond %text @twice @same (%c4, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  %c6 = "corert.print_tensorhandle"(%d, %c5) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %c7, %e = corert.cond %empty @twice @same (%c6, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  %c8 = "corert.print_tensorhandle"(%e, %c7) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c8 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'later_condition':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [14]
func.func @later_condition() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %x = corert.const_dense_tensor dense<7> : tensor<1xi32>
  %later = corert.executeop(%cpu) "tfrt_test.async.noop_no_md"(%x) : 1
  %c1, %a = corert.cond %later @twice @same (%c0, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  %c2 = "corert.print_tensorhandle"(%a, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'failed_condition':
// CHECK-NEXT: returned <<error: invalid tensorhandle>>,<<error: invalid tensorhandle>>
func.func @failed_condition() -> (!tfrt.chain, !corert.tensorhandle) {
  %c0 = tfrt.new.chain
  %x = corert.const_dense_tensor dense<7> : tensor<1xi32>
  // expected-error @+1 {{invalid tensorhandle}}
  %error = "tfrt_test.error_tensorhandle"() : () -> !corert.tensorhandle
  %c1, %a = corert.cond %error @twice @same (%c0, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  tfrt.return %c1, %a : !tfrt.chain, !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'several_elements':
// CHECK-NEXT: returned <<error: a condition has one element, this one has the shape [2]>>
func.func @several_elements() -> !corert.tensorhandle {
  %c0 = tfrt.new.chain
  %x = corert.const_dense_tensor dense<7> : tensor<2xi32>
  // expected-error @+1 {{a condition has one element, this one has the shape [2]}}
  %c1, %a = corert.cond %x @twice @same (%c0, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  tfrt.return %a : !corert.tensorhandle
}
