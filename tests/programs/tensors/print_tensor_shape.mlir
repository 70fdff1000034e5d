// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: shape = [1, 2, 3, 4]
// CHECK-NEXT: shape = [7]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.4 [1 : i64, 2 : i64, 3 : i64, 4 : i64]
  %b = tfrt_dht.create_uninitialized_tensor.f32.1 [7 : i64]
  %c1 = tfrt_dht.print_tensor_shape %a, %c0
  %c2 = tfrt_dht.print_tensor_shape %b, %c1
  tfrt.return %c2 : !tfrt.chain
}
