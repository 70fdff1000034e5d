// A constant is added to a sum, 1,000 times.
func.func @main() -> i32 {
  %count = "tfrt.constant.i32"() {value = 1000 : i32} : () -> i32
  %zero = "tfrt.constant.i32"() {value = 0 : i32} : () -> i32
  %sum = "tfrt.repeat.i32"(%count, %zero) ({
  ^bb0(%before: i32):
    %amount = "tfrt.constant.i32"() {value = 42 : i32} : () -> i32
    %after = "tfrt.add.i32"(%before, %amount) : (i32, i32) -> i32
    "tfrt.return"(%after) : (i32) -> ()
  }) : (i32, i32) -> i32
  "tfrt.return"(%sum) : (i32) -> ()
}
