// Nothing of the file runs.
// CHECK-NOT: int32
func.func @main() -> i32 {
  %one = tfrt.constant.i32 1
  %c0 = tfrt.new.chain
  %c1 = tfrt.print.i32 %one, %c0
  %x = "unsupported_kernel"() : () -> i32 // expected-error {{unknown kernel name 'unsupported_kernel'}}
  tfrt.return %x : i32
}
