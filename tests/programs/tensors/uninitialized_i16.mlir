// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: shape = [2, 3]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = "tfrt_dht.create_uninitialized_tensor.i16.2"() {shape = [2, 3]} : () -> !tfrt_tensor.tensor
  %c1 = tfrt_dht.print_tensor_shape %a, %c0
  tfrt.return %c1 : !tfrt.chain
}
