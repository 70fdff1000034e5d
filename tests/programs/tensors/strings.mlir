// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: StringHostTensor shape = [2], values = ["string", "tensor"]
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = tfrt_sht.create_tensor {shape = [2 : i64], values = ["string", "tensor"]}
  %c1 = tfrt_dht.print_tensor %a, %c0
  tfrt.return %c1 : !tfrt.chain
}
