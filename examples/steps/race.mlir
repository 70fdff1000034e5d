// Two sums of the same numbers: one is there at once, the other one comes later.
//
//   heald run examples/steps/race.mlir --plugin examples/steps/later.py
//   heald report examples/steps/race.mlir -o race.html --plugin examples/steps/later.py
//
// docs/steps.md walks through a run.
func.func @main() -> i32 attributes {tfrt.cost_threshold = 2 : i64} {
  %chain = tfrt.new.chain
  %two = tfrt.constant.i32 2
  %forty = tfrt.constant.i32 40
  %later = "lesson.add_later.i32"(%two, %forty) {_tfrt_cost = 1 : i64} : (i32, i32) -> i32
  %now = tfrt.add.i32 %two, %forty
  %yes = tfrt.constant.i1 true

  // Not strict: it waits neither for all its arguments nor for the one that it does not choose.
  %first = "tfrt.ternary"(%yes, %now, %later) : (i1, i32, i32) -> i32
  %printed = tfrt.print.i32 %first, %chain

  // Strict: it waits for the sum that comes later.
  %double = tfrt.add.i32 %later, %later
  %done = tfrt.print.i32 %double, %printed
  tfrt.return %double : i32
}
