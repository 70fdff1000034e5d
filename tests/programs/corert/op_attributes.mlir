// CHECK-LABEL: --- Running 'attributes':
// CHECK-NEXT: OpAttrs is empty
// CHECK-NEXT: OpAttrs contains 3 entries:
// CHECK-NEXT:   'bar' type=F32 value=5.000000e-01
// CHECK-NEXT:   'foo' type=I32 value=-7
// CHECK-NEXT:   'yes' type=BOOL value=1
// CHECK-NEXT: OpAttrs contains 11 entries:
// CHECK-NEXT:   'aggregate' type=AGGREGATE value=["a", "b"]
// CHECK-NEXT:   'array' type=I32 value=[1, 2, 3, 4, 5]
// CHECK-NEXT:   'bar' type=F32 value=5.000000e-01
// CHECK-NEXT:   'dense' type=DENSE value=dtype = i32, shape = [2], values = [1, 2]
// CHECK-NEXT:   'dtype' type=DTYPE value=i32
// CHECK-NEXT:   'foo' type=I32 value=-7
// CHECK-NEXT:   'long' type=I64 value=[1, 2, 3, 4, 5...]
// CHECK-NEXT:   'reals' type=F32 value=[1.000000e+00, 2.500000e+00]
// CHECK-NEXT:   'shape' type=SHAPE value=[2, 3]
// CHECK-NEXT:   'text' type=CHAR value="some text"
// CHECK-NEXT:   'yes' type=BOOL value=1
// CHECK-NEXT: 'attributes' returned !tfrt.chain value
func.func @attributes() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = "corert.create_op_attrs"() : () -> !corert.opattrs
  %c1 = "tfrt_test.corert.op_attrs_print"(%a, %c0) : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c2 = "corert.op_attrs_set.bool"(%a, %c1) {key = "yes", value = true} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c3 = "corert.op_attrs_set.i32"(%a, %c2) {key = "foo", value = -7 : i32} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c4 = "corert.op_attrs_set.f32"(%a, %c3) {key = "bar", value = 0.5 : f32} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %r, %c5 = "tfrt_test.corert.op_attrs_freeze"(%a, %c4) : (!corert.opattrs, !tfrt.chain) -> (!corert.opattrs_ref, !tfrt.chain)
  %c6 = "corert.op_attrs_set.dtype"(%a, %c5) {key = "dtype", value = i32} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c7 = "corert.op_attrs_set.dense"(%a, %c6) {key = "dense", value = dense<[1, 2]> : tensor<2xi32>} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c8 = "corert.op_attrs_set.aggregate"(%a, %c7) {key = "aggregate", value = ["a", "b"]} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c9 = "corert.op_attrs_set.shape"(%a, %c8) {key = "shape", value = #corert.shape<2x3>} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c10 = "corert.op_attrs_set_array.i32"(%a, %c9) {key = "array", value = [1 : i32, 2 : i32, 3 : i32, 4 : i32, 5 : i32]} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c11 = "corert.op_attrs_set_array.i64"(%a, %c10) {key = "long", value = [1, 2, 3, 4, 5, 6]} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c12 = "corert.op_attrs_set_array.f32"(%a, %c11) {key = "reals", value = [1.0 : f32, 2.5 : f32]} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c13 = "corert.op_attrs_set.str"(%a, %c12) {key = "text", value = "some text"} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  %c14 = "tfrt_test.corert.op_attrs_ref_print"(%r, %c13) : (!corert.opattrs_ref, !tfrt.chain) -> !tfrt.chain
  %c15 = "tfrt_test.corert.op_attrs_print"(%a, %c14) : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c15 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'set_twice':
// CHECK-NEXT: 'set_twice' returned <<error: the attribute 'foo' is set already>>
func.func @set_twice() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = "corert.create_op_attrs"() : () -> !corert.opattrs
  %c1 = "corert.op_attrs_set.i32"(%a, %c0) {key = "foo", value = 1 : i32} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  // expected-error @+1 {{the attribute 'foo' is set already}}
  %c2 = "corert.op_attrs_set.i32"(%a, %c1) {key = "foo", value = 2 : i32} : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}
