// An unknown kernel is an error at its place, and nothing runs.
// CHECK: Choosing single-threaded work queue.
// CHECK-NOT: Running
func.func @main() {
  "no.such.kernel"() : () -> () // expected-error {{runtime error: unknown kernel name 'no.such.kernel'}}
  "tfrt.return"() : () -> ()
}
