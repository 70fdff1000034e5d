// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned !tfrt.chain value
func.func @main() -> !tfrt.chain {
  %c0 = "tfrt_test.unique_loc"() {name = "a"} : () -> !tfrt.chain loc("place":1:1)
  %c1 = "tfrt_test.unique_loc"() {name = "b"} : () -> !tfrt.chain loc("place":1:2)
  %c2 = tfrt.merge.chains %c0, %c1 : !tfrt.chain, !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}
