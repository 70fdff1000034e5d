// CHECK-LABEL: --- Running 'main':
// CHECK: BM:additions:Duration(ns): {{[0-9]+}}
// CHECK-NEXT: BM:additions:Count: 100
// CHECK-NEXT: BM:additions:Time Min(ns): {{[0-9]+}}
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %c1 = tfrt_test.benchmark "additions"(%c0 : !tfrt.chain) duration_secs = 1, max_count = 100, num_warmup_runs = 10 {
    %one = tfrt.constant.i32 1
    %two = tfrt.add.i32 %one, %one
    tfrt.return %two : i32
  }
  tfrt.return %c1 : !tfrt.chain
}
