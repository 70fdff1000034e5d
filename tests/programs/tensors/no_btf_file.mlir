// A program opens only files that the configuration permits: [files] read.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: btf.read_dense_tensor.f32.4 may not read {{.*}}
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %path = "tfrt_test.get_string"() {value = "no/such.btf"} : () -> !tfrt.string
  %index = tfrt.constant.i32 0
  %a = "btf.read_dense_tensor.f32.4"(%path, %index) : (!tfrt.string, i32) -> !tfrt_tensor.tensor // expected-error {{may not read}}
  %c1 = tfrt_dht.print_tensor %a, %c0
  tfrt.return %c1 : !tfrt.chain
}
