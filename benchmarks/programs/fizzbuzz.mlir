// The numbers 1 to 1,000; 3, 5 or 15 in place of a multiple.
func.func @print(%number: i32, %chain: !tfrt.chain) -> !tfrt.chain {
  %done = "tfrt.print.i32"(%number, %chain) : (i32, !tfrt.chain) -> !tfrt.chain
  "tfrt.return"(%done) : (!tfrt.chain) -> ()
}
func.func @fifteen(%number: i32, %chain: !tfrt.chain) -> !tfrt.chain {
  %value = "tfrt.constant.i32"() {value = 15 : i32} : () -> i32
  %done = "tfrt.print.i32"(%value, %chain) : (i32, !tfrt.chain) -> !tfrt.chain
  "tfrt.return"(%done) : (!tfrt.chain) -> ()
}
func.func @three(%number: i32, %chain: !tfrt.chain) -> !tfrt.chain {
  %value = "tfrt.constant.i32"() {value = 3 : i32} : () -> i32
  %done = "tfrt.print.i32"(%value, %chain) : (i32, !tfrt.chain) -> !tfrt.chain
  "tfrt.return"(%done) : (!tfrt.chain) -> ()
}
func.func @five(%number: i32, %chain: !tfrt.chain) -> !tfrt.chain {
  %value = "tfrt.constant.i32"() {value = 5 : i32} : () -> i32
  %done = "tfrt.print.i32"(%value, %chain) : (i32, !tfrt.chain) -> !tfrt.chain
  "tfrt.return"(%done) : (!tfrt.chain) -> ()
}
func.func @by_three(%five: i1, %number: i32, %chain: !tfrt.chain) -> !tfrt.chain {
  %done = "tfrt.cond"(%five, %number, %chain) {a_true_fn = @fifteen, b_false_fn = @three}
    : (i1, i32, !tfrt.chain) -> !tfrt.chain
  "tfrt.return"(%done) : (!tfrt.chain) -> ()
}
func.func @not_by_three(%five: i1, %number: i32, %chain: !tfrt.chain) -> !tfrt.chain {
  %done = "tfrt.cond"(%five, %number, %chain) {a_true_fn = @five, b_false_fn = @print}
    : (i1, i32, !tfrt.chain) -> !tfrt.chain
  "tfrt.return"(%done) : (!tfrt.chain) -> ()
}
func.func @main() -> (i32, !tfrt.chain) {
  %count = "tfrt.constant.i32"() {value = 1000 : i32} : () -> i32
  %zero = "tfrt.constant.i32"() {value = 0 : i32} : () -> i32
  %start = "tfrt.new.chain"() : () -> !tfrt.chain
  %last:2 = "tfrt.repeat.i32"(%count, %zero, %start) ({
  ^bb0(%before: i32, %chain: !tfrt.chain):
    %one = "tfrt.constant.i32"() {value = 1 : i32} : () -> i32
    %none = "tfrt.constant.i32"() {value = 0 : i32} : () -> i32
    %c3 = "tfrt.constant.i32"() {value = 3 : i32} : () -> i32
    %c5 = "tfrt.constant.i32"() {value = 5 : i32} : () -> i32
    %number = "tfrt.add.i32"(%before, %one) : (i32, i32) -> i32
    %q3, %r3 = "tfrt.div.i32"(%number, %c3) : (i32, i32) -> (i32, i32)
    %q5, %r5 = "tfrt.div.i32"(%number, %c5) : (i32, i32) -> (i32, i32)
    %by3 = "tfrt.equal.i32"(%r3, %none) : (i32, i32) -> i1
    %by5 = "tfrt.equal.i32"(%r5, %none) : (i32, i32) -> i1
    %done = "tfrt.cond"(%by3, %by5, %number, %chain) {a_true_fn = @by_three, b_false_fn = @not_by_three}
      : (i1, i1, i32, !tfrt.chain) -> !tfrt.chain
    "tfrt.return"(%number, %done) : (i32, !tfrt.chain) -> ()
  }) : (i32, i32, !tfrt.chain) -> (i32, !tfrt.chain)
  "tfrt.return"(%last#0, %last#1) : (i32, !tfrt.chain) -> ()
}
