// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 1,0
func.func @main() -> (i1, i1) {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.i32.2 [2 : i64, 2 : i64]
  %b = tfrt_dht.create_uninitialized_tensor.i32.2 [2 : i64, 2 : i64]
  %c = tfrt_dht.create_uninitialized_tensor.i32.2 [2 : i64, 1 : i64]
  %c1 = tfrt_dht.fill_tensor_with_constant.i32 %a, %c0 1 : i32
  %c2 = tfrt_dht.fill_tensor_with_constant.i32 %b, %c1 1 : i32
  %c3 = tfrt_dht.fill_tensor_with_constant.i32 %c, %c2 1 : i32
  %same, %c4 = tfrt_dht.tensor_equal.i32 %a, %b, %c3
  %other, %c5 = tfrt_dht.tensor_equal.i32 %a, %c, %c4
  tfrt.return %same, %other : i1, i1
}
