// Threads are numbered in the order in which they ask.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned 0
func.func @main() -> i32 {
  %c0 = tfrt.new.chain
  %id = "tfrt_test.get_thread_id"(%c0) : (!tfrt.chain) -> i32
  tfrt.return %id : i32
}
