#include "core/data/stories/rules.h"

namespace forge::data::stories {

const std::vector<RuleText>& learning_plots() {
  static const std::vector<RuleText> rules = {
      // A skill learned from somebody, shown later.
      {"plot_skill",
       {"{meet_A} More than anything {A.he} wanted to {skill1}, but {A.he} did not know how. "
        "{skill_teacher}\n\n{skill_practice} [{scene}|{habit}]\n\n{skill_shown} {moral}"}},
      {"skill_teacher",
       {"In {village} lived {C}, {job1.a}, who could {skill1} better than anyone. {when}, {A} took "
        "the {vehicle1} and went there with {dish1.a} as a present.",
        "\"Ask {C},\" said {B}. \"{C.he} is {job1.a}, and {C.he} taught my {family} to {skill1}.\" "
        "So {A} {move.ed} {went_to} and gave {C.him} {dish1.a}.",
        "{A.his} {family} said that {C}, the {job1} at the {building1}, knew how to {skill1}. {A} "
        "brought {C.him} {dish1.a} and asked {tone}."}},
      {"skill_practice",
       {"\"It is not hard,\" {said_C}, \"but you must try {n1} times.\" {A} tried and {worry.ed}. "
        "After {n2} days {A.his} {limb.s} hurt, and still it went wrong. \"{lesson1},\" {said_C}.",
        "{C} showed {A.him} everything {touch}. {A} tried once, twice, {n1} times. {upset_A} "
        "\"Wait until {day1},\" {said_C}. And on {day1} {A} could {skill1}.",
        "First {A.he} had to {task1}, then to {task2}. \"What has this to do with it?\" {A.he} "
        "asked. \"Who {task1.s} well learns well,\" {said_C}. After {n1} weeks {A} understood."}},
      {"skill_shown",
       {"At the {festival1} {B} asked, \"Can anyone here {skill1}?\" {A} stood up and did it. "
        "Everybody {gesture.ed}. \"Who taught you that?\" asked {B}. \"{C}, the {job1},\" "
        "{said_A}, \"and all it cost was {dish1.a}.\"",
        "Back in {village1} {A} showed {B} how to {skill1}. \"How often did you try?\" asked {B}. "
        "{A} {gesture.ed} and thought of the {job1}, who had waited so long. \"Often enough,\" "
        "{A.he} said, \"and I will teach you too, if you bring me {dish1.a}.\"",
        "Many years later {A} was {job1.a} too. When {trait.a} child came with {dish1.a} and "
        "wanted to {skill1}, {A} remembered {C} and {gesture.ed}."}},

      // What was noticed outside answers a question at school.
      {"plot_school", {"{meet_A} {school_way}\n\n{school_lesson}\n\n{school_answer}"}},
      {"school_way",
       {"{when}, on the way to school, {A.he} saw {hoarder1.a}. It had {n1} {hoard1.s} and carried "
        "them, one by one, under {tree.a}. A little later {A.he} saw {seen}. {A} looked for so "
        "long that {A.he} came late.",
        "{A} did not like {subject1}. {A.he} liked to {move} through the {landscape} and look at "
        "things. {when}, {A.he} counted {n1} {hoard1.s} that {hoarder1.a} had hidden. [Then "
        "{weather_change}.|{scene}]",
        "{A.he} {often} stopped at the {landscape} before school. There {hoarder1.a} lived among "
        "the {tree.s}, and {A} knew that it had hidden {n1} {hoard1.s} for the winter."}},
      {"school_lesson",
       {"{C}, the teacher, was {upset}. \"{A}, where have you been?\" {C.he} asked. \"We have "
        "{subject1} today, and {B} has already answered {n2} questions.\" {B} was {trait.a} pupil "
        "and {gesture.ed}.",
        "That day {C} taught {subject1}. {C.he} wrote {number} words on the board, and {B} read "
        "them {tone}. {A} looked out of the window, where {weather_change}.",
        "\"Today we talk about animals,\" {said_C}, \"and not about {subject1}.\" {B} "
        "{gesture.ed}, for {B.he} had learned the {subject1} by heart. {scene}"}},
      {"school_answer",
       {"\"Now,\" {said_C}, \"who knows what {hoarder1.a} does before winter?\" Nobody answered, "
        "not even {B}. {A} stood up. \"It hides {hoard1.s},\" {A.he} said. \"I counted them. There "
        "were {n1}.\" {C} {gesture.ed}. \"That is better than {subject1},\" {C.he} said. {moral}",
        "Then came a question that was in no book. \"How many {hoard1.s} can {hoarder1.a} carry "
        "away?\" \"{n1},\" {said_A} at once. \"How do you know?\" asked {B}. \"I watched it,\" "
        "{said_A}. {B} was {glad}, and {C} gave {A.him} {thing.a}. {moral}"}},

      // A message, word for word, over several people.
      {"plot_message",
       {"{meet_A} {when}, {C} called {A.him}. \"Go to {E} at the {building1},\" {C.he} said, \"and "
        "say that {message1}. Do not forget it.\"\n\n{message_way}\n\n{message_told}"}},
      {"message_way",
       {"{A} {move.ed} past the {building2} and over the {crossing1}. {scene} All the way {A.he} "
        "said it to {A.himself}: {message1}.",
        "On the way {A.he} met {B}, who wanted to {play1}. \"Later,\" {said_A}, \"I have a "
        "message.\" Behind the {crossing1} {A.he} saw {seen}. [{scene} |]But {A.he} did not stop.",
        "{A} was {weary}, for it was far. At the {crossing1} {A.he} met {B} and they {play1.ed} "
        "until {until}. Then {A.he} remembered the message. {A.he} {move.ed} on {pace}, past the "
        "{building2}."}},
      {"message_told",
       {"{E} was {task.ing} at the {building1}. \"What brings you here?\" {E.he} asked. \"{C} "
        "sends me,\" {said_A}. \"I am to say that {message1}.\" {E} {gesture.ed}. \"Then tell "
        "{C},\" {E.he} said, \"that I will come on {day1}.\" {A} went all the way back. \"What did "
        "{E} say?\" asked {C}. \"{E.he} will come on {day1},\" {said_A}. {tell_seen}",
        "At the {building1} {A} found {D} instead. \"{E} is not here,\" {said_D}. \"Tell me, and I "
        "will tell {E.him}.\" So {A} told {D} that {message1}. In the evening {E} came to {C}. "
        "\"{D} says that {message1}. Is it true?\" \"It is,\" {said_C}, \"and {A} carried it "
        "without losing a word.\" {moral}"}},

      // A way there and, in the opposite order, back again.
      {"plot_way", {"{meet_A} {way_why}\n\n{way_there}\n\n{way_back}"}},
      {"way_why",
       {"{A.his} {family} was ill, and only {C}, {job1.a}, had the right {drink}. \"Go past the "
        "{building1},\" they told {A.him}, \"then over the {crossing1}, and turn at the {tree1}.\"",
        "{when}, {A} had to bring {x.a} to {C}. \"Where does {C.he} live?\" asked {A}. \"Walk to "
        "the {building1}, cross the {crossing1} and look for the {tree1},\" {said_B}.",
        "{A} had never been at {C}'s house. \"It is easy,\" said {B}. \"First comes the "
        "{building1}, then the {crossing1}, and last the {tree1}. There it is.\""}},
      {"way_there",
       {"At the {building1} {A} saw {seen}. At the {crossing1} {A.he} [rested|ate {fruit.a}|lost "
        "{A.his} {clothing}]. [{scene} |]And behind the {tree1} stood the house. {C} was "
        "{task1.ing}. \"Did you find the way?\" {C.he} asked. \"First the {building1}, then the "
        "{crossing1}, then the {tree1},\" {said_A}.",
        "{moved_A}. There was the {building1}, and there was the {crossing1}, where {number} "
        "{bird.s} {bird_act.ed}. [{scene} |]When {A.he} came to the {tree1}, {C} was already "
        "waiting, for {C.he} had {task1.en} since {hour1}."}},
      {"way_back",
       {"But when {A} wanted to go home, {weather_change}, and everything looked strange. \"Go the "
        "same way, only turned around,\" {said_C}. So the {tree1} came first, then the "
        "{crossing1}, and last of all the {building1}. \"What was {C} doing?\" they asked at home. "
        "\"{C.he} was {task1.ing},\" {said_A}. {tell_seen}",
        "It grew dark. {A} was {upset}, but {A.he} thought: \"If the {tree1} was last, it is now "
        "first.\" After the {tree1} {A.he} found the {crossing1}, and after the {crossing1} the "
        "{building1}. At the door stood {B}. \"How did you find the way?\" asked {B}. \"I went it "
        "backwards,\" {said_A}. {moral}"}},
  };
  return rules;
}

}  // namespace forge::data::stories
