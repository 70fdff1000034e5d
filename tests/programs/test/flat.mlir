// The leaves of an aggregate attribute, in order.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: string = leaf
// CHECK-NEXT: 'main' returned 1,2,{{.*}}
func.func @main() -> (i32, i32, f32) {
  %c0 = tfrt.new.chain
  %s, %a, %b, %f = "tfrt_test.flat"() {value = [["leaf", [1 : i32, 2 : i32]], [1.5 : f32]]}
    : () -> (!tfrt.string, i32, i32, f32)
  %c1 = "tfrt_test.print_string"(%s, %c0) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %a, %b, %f : i32, i32, f32
}
