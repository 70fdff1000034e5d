// CHECK-LABEL: --- Running 'main':
// CHECK-NOT: shape
// CHECK: 'main' returned <<error: Cannot allocate tensor>>
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_dht.create_uninitialized_tensor.f32.2 [1000000000 : i64, 1000000000 : i64] // expected-error {{Cannot allocate tensor}}
  %c1 = tfrt_dht.print_tensor_shape %a, %c0
  tfrt.return %c1 : !tfrt.chain
}
