// RUN: tfrt_opt

// CHECK-LABEL: func.func @calls
func.func @calls(%h: !corert.ophandler, %c: !tfrt.chain, %x: !corert.tensorhandle, %op: !corert.op) {
  // CHECK-NEXT: %0 = corert.executeop(%arg0) "tf.A"(%arg2, %arg2) {axis = 1 : i32, shape = [1, 2], type = "f16"} : 1
  %0 = corert.executeop(%h) "tf.A"(%x, %x) {axis = 1 : i32, shape = [1, 2], type = "f16"} : 1
  // CHECK-NEXT: %1:2 = corert.executeop(%arg0) "tf.B"() : 2
  %1:2 = "corert.executeop"(%h) {op_attrs = [], op_func_attrs = [], op_name = "tf.B"} : (!corert.ophandler) -> (!corert.tensorhandle, !corert.tensorhandle)
  // CHECK-NEXT: corert.executeop(%arg0) "tf.C"(%0) {} {f = "g"}
  corert.executeop(%h) "tf.C"(%0) {} {f = "g"}
  // CHECK-NEXT: %2:2 = corert.executeop.seq(%arg0, %arg1) "tf.D"(%1#1) {"not an identifier" = dense<1> : tensor<2xi32>} : 1
  %2:2 = corert.executeop.seq(%h, %c) "tf.D"(%1#1) {"not an identifier" = dense<1> : tensor<2xi32>} : 1
  // CHECK-NEXT: %3 = corert.executeop.seq(%arg0, %arg1) "tf.E"()
  %3 = corert.executeop.seq(%h, %c) "tf.E"() : 0
  // CHECK-NEXT: %4 = corert.execute_crt_op(%arg3) (%arg2) : 1
  %4 = corert.execute_crt_op(%op) (%x) : 1
  // CHECK-NEXT: %5 = corert.get_op_handler %arg1 "cpu"
  %5 = corert.get_op_handler %c "cpu"
  // CHECK-NEXT: %6 = corert.register_op_handler %5 "other"
  %6 = corert.register_op_handler %5 "other"
  // CHECK-NEXT: %7 = corert.const_dense_tensor dense<[1, 2]> : tensor<2xi32>
  %7 = corert.const_dense_tensor dense<[1, 2]> : tensor<2xi32>
  // CHECK-NEXT: %8 = corert.const_string_tensor {shape = [1], value = ["a"]}
  %8 = corert.const_string_tensor {shape = [1], value = ["a"]}
  // CHECK-NEXT: %9 = corert.create_dense_tensor.f32 {shape = [1], value = [1.000000e+00 : f32]}
  %9 = corert.create_dense_tensor.f32 {shape = [1], value = [1.0 : f32]}
  // CHECK-NEXT: %10 = corert.tensorhandle_to_int32 %7
  %10 = corert.tensorhandle_to_int32 %7
  tfrt.return
}

// CHECK-LABEL: func.func @f
func.func @f(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  // CHECK-NEXT: %0:2 = corert.cond %arg1 @f @f(%arg0, %arg1) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  %0:2 = corert.cond %x @f @f (%c, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  // CHECK-NEXT: %1:2 = corert.while @f @f(%arg0, %arg1) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  %1:2 = corert.while @f @f (%c, %x) : (!tfrt.chain, !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle)
  tfrt.return %0#0, %1#1 : !tfrt.chain, !corert.tensorhandle
}
