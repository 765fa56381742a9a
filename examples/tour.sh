# A shell that remembers its functions and where it is: airlock run examples/tour.sh Ada
greet() {
  echo "hello ${1:-you}, from $(whoami) in $PWD"
}

mkdir -p notes && cd notes
for name in one two three; do
  echo "$name" >"$name.txt"
done
greet "$1"
wc -l ./*.txt
