// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: DenseHostTensor dtype = i32, shape = [3, 6], values = [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, ... ]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %b = tfrt_dht.create_uninitialized_tensor.i32.2 [3 : i64, 6 : i64]
  %c1 = tfrt_dht.fill_tensor_with_constant.i32 %b, %c0 7 : i32
  %c2 = tfrt_dht.print_tensor %b, %c1
  tfrt.return %c2 : !tfrt.chain
}
