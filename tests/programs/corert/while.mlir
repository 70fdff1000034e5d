// RUN: bef_executor --test_init_function=register

func.func @register() -> !tfrt.chain {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %c = corert.register_op_handler %cpu "cpu"
  tfrt.return %c : !tfrt.chain
}

func.func @goes_on(%c: !tfrt.chain, %i: !corert.tensorhandle, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %c, %i : !tfrt.chain, !corert.tensorhandle
}

func.func @body(%c: !tfrt.chain, %i: !corert.tensorhandle, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %c "cpu"
  %one = corert.const_dense_tensor dense<-1> : tensor<1xi32>
  %c1, %j = corert.executeop.seq(%cpu, %c) "tfrt_test.add"(%i, %one) : 1
  %y = corert.executeop(%cpu) "tfrt_test.add"(%x, %x) : 1
  tfrt.return %c1, %j, %y : !tfrt.chain, !corert.tensorhandle, !corert.tensorhandle
}

func.func @later_body(%c: !tfrt.chain, %i: !corert.tensorhandle, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %c "cpu"
  %one = corert.const_dense_tensor dense<-1> : tensor<1xi32>
  %k = corert.executeop(%cpu) "tfrt_test.async.noop"(%i) : 1
  %c1, %j = corert.executeop.seq(%cpu, %c) "tfrt_test.add"(%k, %one) : 1
  %y = corert.executeop(%cpu) "tfrt_test.add"(%x, %x) : 1
  %z = corert.executeop(%cpu) "tfrt_test.async.noop_no_md"(%y) : 1
  tfrt.return %c1, %j, %z : !tfrt.chain, !corert.tensorhandle, !corert.tensorhandle
}

func.func @failing_body(%c: !tfrt.chain, %i: !corert.tensorhandle, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) {
  // expected-error @+1 {{runtime error: invalid tensorhandle}}
  %error = "tfrt_test.error_tensorhandle"() : () -> !corert.tensorhandle
  tfrt.return %c, %error, %x : !tfrt.chain, !corert.tensorhandle, !corert.tensorhandle
}

func.func @failing_condition(%c: !tfrt.chain, %i: !corert.tensorhandle, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  // expected-error @+1 {{runtime error: invalid tensorhandle}}
  %error = "tfrt_test.error_tensorhandle"() : () -> !corert.tensorhandle
  tfrt.return %c, %error : !tfrt.chain, !corert.tensorhandle
}

func.func @cancelling_body(%c: !tfrt.chain, %i: !corert.tensorhandle, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) {
  %r, %c1 = "tfrt_test.cancel"(%c) : (!tfrt.chain) -> (i32, !tfrt.chain)
  tfrt.return %c1, %i, %x : !tfrt.chain, !corert.tensorhandle, !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'five_times':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [1], values = [0]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [32, 32]
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [32, 32]
func.func @five_times() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %i = corert.const_dense_tensor dense<5> : tensor<1xi32>
  %x = corert.const_dense_tensor dense<1> : tensor<2xi32>
  %c1, %j, %y = corert.while @goes_on @body (%c0, %i, %x) : (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle)
  %c2 = "corert.print_tensorhandle"(%j, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %c3 = "corert.print_tensorhandle"(%y, %c2) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  %c4, %k, %z = corert.while @goes_on @later_body (%c3, %i, %x) : (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle)
  %c5 = "corert.print_tensorhandle"(%z, %c4) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c5 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'never':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [2], values = [1, 1]
func.func @never() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %i = corert.const_dense_tensor dense<0> : tensor<1xi32>
  %x = corert.const_dense_tensor dense<1> : tensor<2xi32>
  %c1, %j, %y = corert.while @goes_on @body (%c0, %i, %x) : (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle)
  %c2 = "corert.print_tensorhandle"(%y, %c1) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'error_of_the_body':
// CHECK-NEXT: returned <<error: invalid tensorhandle>>,<<error: invalid tensorhandle>>,<<error: invalid tensorhandle>>
func.func @error_of_the_body() -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) {
  %c0 = tfrt.new.chain
  %i = corert.const_dense_tensor dense<5> : tensor<1xi32>
  %c1, %j, %y = corert.while @goes_on @failing_body (%c0, %i, %i) : (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle)
  tfrt.return %c1, %j, %y : !tfrt.chain, !corert.tensorhandle, !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'error_of_the_condition':
// CHECK-NEXT: returned <<error: invalid tensorhandle>>,<<error: invalid tensorhandle>>,<<error: invalid tensorhandle>>
func.func @error_of_the_condition() -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) {
  %c0 = tfrt.new.chain
  %i = corert.const_dense_tensor dense<5> : tensor<1xi32>
  %c1, %j, %y = corert.while @failing_condition @body (%c0, %i, %i) : (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle)
  tfrt.return %c1, %j, %y : !tfrt.chain, !corert.tensorhandle, !corert.tensorhandle
}

// CHECK-LABEL: --- Running 'cancelled_loop':
// CHECK-NEXT: returned <<error: Cancelled>>,<<error: Cancelled>>
func.func @cancelled_loop() -> (!tfrt.chain, !corert.tensorhandle) {
  %c0 = tfrt.new.chain
  %i = corert.const_dense_tensor dense<5> : tensor<1xi32>
  %c1, %j, %y = corert.while @goes_on @cancelling_body (%c0, %i, %i) : (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle, !corert.tensorhandle)
  tfrt.return %c1, %j : !tfrt.chain, !corert.tensorhandle
}
